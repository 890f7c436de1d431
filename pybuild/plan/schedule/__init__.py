"""Orders of layers, stages that advance in lock step, and waits for devices."""
