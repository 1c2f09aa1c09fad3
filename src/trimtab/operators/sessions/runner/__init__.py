"""The reference runner: a program that does what a runner must, with a scripted agent.

It shows the contract between a session and its runner and is no model of any agent:
repositories are really cloned, runs are really streamed, and the agent does what its
prompt says, line by line.
"""
