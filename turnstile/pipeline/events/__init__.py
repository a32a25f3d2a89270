"""The journal as DataFrames: which events there are, which are missing, and which limits were in force when."""
