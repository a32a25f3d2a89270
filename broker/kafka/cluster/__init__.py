"""What a broker says of the cluster and of itself: ApiVersions, DescribeCluster, features."""
