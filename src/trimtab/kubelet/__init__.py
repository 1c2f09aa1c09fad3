"""The kubelet: pods as local processes, so that a laptop is a cluster.

No isolation is promised: it runs trusted code on one's own machine.
"""
