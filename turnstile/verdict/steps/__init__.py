"""The steps of the course: functions of a Stage, which is left as it was but for what was seen."""
