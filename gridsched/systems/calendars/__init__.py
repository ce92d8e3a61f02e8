"""Imprecise calendars (Hollingsworth and Maneewongvatana 1999): slots of many durations, tree of managers."""
