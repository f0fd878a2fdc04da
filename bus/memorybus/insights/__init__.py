"""Figures of what agents did and what memory was worth, counted from archive and log.

`read_insights` reads rows (`rows`), counts them with DuckDB (`counting`), and returns `Insights`
(`report`). docs/insights.md defines each figure.
"""
