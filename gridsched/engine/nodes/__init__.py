"""Local scheduler of a cluster of nodes: several resources, placement, failures, limits, dependencies.

Nodes are known by name, not by number: a job runs on certain nodes and on certain GPUs of them. Clusters
that are a number of processors alone are scheduled by the faster kernels beside this folder.

`records` says what is stored, `arrays` makes room for it, `resources` knows what is free, `plans` when
something will be free, `placement` which nodes a job gets, `queue` who waits and may start,
`scheduling` how jobs start in a pass, `events` what happens to nodes and jobs, `simulation` in which order.
"""
