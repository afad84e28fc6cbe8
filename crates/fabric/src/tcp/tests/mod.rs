mod intruders;
mod protocol;
