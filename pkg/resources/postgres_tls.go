package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	// CAKey is the Secret key with the CA of a PostgreSQL server.
	CAKey = "ca.crt"

	postgresTLSVolume = "postgres-tls"
	postgresTLSDir    = "/etc/postgres-tls"
	// postgresKeyMode is the least strict mode that PostgreSQL accepts for a key of root; pods read it by their group.
	postgresKeyMode = int32(0o640)
)

// servePostgresTLS enables TLS for a server of the sclorg images with the certificate in a Secret, and returns its volume. The start script
// of these images passes its arguments to the server.
func servePostgresTLS(container *corev1ac.ContainerApplyConfiguration, secret string) *corev1ac.VolumeApplyConfiguration {
	settings := []string{
		"-c", "ssl=on",
		"-c", "ssl_cert_file=" + postgresTLSDir + "/" + corev1.TLSCertKey,
		"-c", "ssl_key_file=" + postgresTLSDir + "/" + corev1.TLSPrivateKeyKey,
	}
	if n := len(container.Command); n > 0 { // see ExclusivePostgres
		container.Command[2] += " " + strings.Join(settings, " ")
	} else {
		container.WithArgs("run-postgresql").WithArgs(settings...)
	}
	container.WithVolumeMounts(corev1ac.VolumeMount().WithName(postgresTLSVolume).WithMountPath(postgresTLSDir).WithReadOnly(true))
	source := corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(postgresKeyMode)
	return corev1ac.Volume().WithName(postgresTLSVolume).WithSecret(source)
}

// AddPostgresVerification makes a libpq client verify the server with the CA in a Secret, and returns its volume. sslMode decides whether
// the host name is verified too.
func AddPostgresVerification(container *corev1ac.ContainerApplyConfiguration, sslMode, secret string) *corev1ac.VolumeApplyConfiguration {
	const volume, dir = "postgres-ca", "/etc/postgres-ca"
	container.WithEnv(
		corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(sslMode),
		corev1ac.EnvVar().WithName("PGSSLROOTCERT").WithValue(dir+"/"+CAKey),
	).WithVolumeMounts(corev1ac.VolumeMount().WithName(volume).WithMountPath(dir).WithReadOnly(true))
	return corev1ac.Volume().WithName(volume).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).
		WithItems(corev1ac.KeyToPath().WithKey(CAKey).WithPath(CAKey)))
}
