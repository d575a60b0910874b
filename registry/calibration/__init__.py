"""How hard a task is and how able a policy: the beta-binomial Rasch model, intervals, pass@k, item flags."""
