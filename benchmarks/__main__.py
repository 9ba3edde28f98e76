"""``make bench``: every figure as a JSON line, beside its peer from the same run."""

from benchmarks import encoder, http_api, mongodb, mysql, postgresql, slowed, tenants, worker

if __name__ == "__main__":
    encoder.main()
    mongodb.main()
    postgresql.main()
    mysql.main()
    slowed.main()
    http_api.main()
    worker.main()
    tenants.main(tenants.SHORT)
