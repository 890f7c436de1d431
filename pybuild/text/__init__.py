"""Names and text: what people read, C compiles and a terminal must not obey."""
