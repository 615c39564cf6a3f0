"""Where the slices of a sweep are computed: processes of this machine, or a cluster."""
