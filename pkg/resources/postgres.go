package resources

import corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

// PostgresGraceSeconds is how long a pod of PostgreSQL may take to stop: a fast stop ends with a checkpoint, which a slow volume
// takes its time for.
const PostgresGraceSeconds int64 = 120

// postgresCommand starts the server of the sclorg images (https://github.com/sclorg/postgresql-container) once no other server
// uses the volume at $1. A Deployment replaces a pod that is being deleted while its server still runs, and PostgreSQL does
// not notice the first one, because both are process 1 in their containers. The lock is held by descriptor 9, which the
// server and its children inherit, so it ends with the last of them, however that ends.
const postgresCommand = `command -v flock >/dev/null || { echo "This image has no flock (util-linux), which keeps two servers from using one volume." >&2; exit 1; }
exec 9>>"$1/.lock" || exit 1
trap 'exit 0' INT TERM
until flock --timeout 10 9; do
  [ $? -eq 1 ] || exit 1
  echo "Another server still uses this volume; waiting until it has stopped." >&2
done
trap - INT TERM
exec container-entrypoint run-postgresql`

// ExclusivePostgres makes a container of an sclorg image the only server on the volume that is mounted at dir.
func ExclusivePostgres(container *corev1ac.ContainerApplyConfiguration, dir string) *corev1ac.ContainerApplyConfiguration {
	return StopPostgresFast(container).WithCommand("/bin/sh", "-c", postgresCommand, "postgres", dir)
}

// StopPostgresFast makes a container of PostgreSQL close its connections and stop when its pod ends. At SIGTERM alone the server
// would wait for clients to leave, which those with a connection pool never do, until it is killed.
func StopPostgresFast(container *corev1ac.ContainerApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	return container.WithLifecycle(corev1ac.Lifecycle().
		WithPreStop(corev1ac.LifecycleHandler().
			WithExec(corev1ac.ExecAction().WithCommand("/bin/sh", "-c", "kill -INT 1"))))
}
