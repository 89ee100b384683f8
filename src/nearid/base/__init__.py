"""What every room may use: errors, alerts, progress, safe files, threads and checks of options."""
