#ifndef PLUGIN_H
#define PLUGIN_H

/* What the plugin offers, as its symbol "plugin". */
struct plugin {
    int (*twice)(int value);
    int (*counted)(int value);
    const char *(*name)(void);
    const int *table;
};

#endif
