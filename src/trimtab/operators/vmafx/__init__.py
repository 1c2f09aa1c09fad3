"""Video quality scoring: a pair of clips becomes a VMAF score, measured by libvmaf."""
