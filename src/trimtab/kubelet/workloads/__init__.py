"""Workloads: Deployments, ReplicaSets, Jobs and CronJobs, by Trimtab's own runtime."""
