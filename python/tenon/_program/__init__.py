"""Programs that run as plans: compile() and its report, and the plans that authors of operators cache."""
