"""Makes the bucket that the benchmark writes to, where it is not there yet."""

import boto3

from benchmarks.source_measures import bench_bucket


def main() -> None:
    location = bench_bucket()
    client = boto3.client(
        "s3",
        endpoint_url=location.endpoint,
        aws_access_key_id=location.access_key_id,
        aws_secret_access_key=location.secret_key,
        region_name=location.region,
    )
    try:
        client.create_bucket(Bucket=location.bucket)
    except client.exceptions.BucketAlreadyOwnedByYou:
        pass
    finally:
        client.close()


if __name__ == "__main__":
    main()
