"""Callbacks for training frameworks that log how near a run is to a reference run."""
