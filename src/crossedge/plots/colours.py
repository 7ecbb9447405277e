"""Colours that all pictures share."""

X_COLOUR, Y_COLOUR, CROSS_COLOUR, GREY = "#2f6db3", "#e08e1b", "#c2185b", "#9a9a9a"
