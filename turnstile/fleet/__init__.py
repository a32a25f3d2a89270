"""Load from many machines: a driver in each slot of a Spark cluster, and this process, the hub, which they report to.

`job.py` is its entry point. `member.py` is what a driver does, `hub.py` what is done with what it says; neither knows Spark.
"""
