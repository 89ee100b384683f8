"""Engines, which run passes over rows in this process, in several processes, or on a Dask cluster."""
