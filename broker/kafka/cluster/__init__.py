"""The APIs by which a broker describes the cluster and itself: ApiVersions, DescribeCluster, features."""
