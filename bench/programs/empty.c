/* Nothing: what it costs to start and end. */
int main(void)
{
    return 0;
}
