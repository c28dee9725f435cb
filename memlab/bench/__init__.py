"""Measuring how fast memlab is: synthetic stores of any size, what is timed on them, and how it is shown."""
