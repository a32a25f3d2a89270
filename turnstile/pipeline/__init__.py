"""PySpark jobs over the journal and over real connection logs: audit, report, plan."""
