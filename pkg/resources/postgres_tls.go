package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	// CAKey is the key of a Secret that has the CA of a server of PostgreSQL.
	CAKey = "ca.crt"

	postgresTLSVolume, postgresTLSDir = "postgres-tls", "/etc/postgres-tls"
	// postgresKeyMode is the widest that PostgreSQL accepts of a key that belongs to root; the group of the pod reads it.
	postgresKeyMode = int32(0o640)
)

// servePostgresTLS has a server of the sclorg images offer TLS with the certificate in a Secret, and returns the volume with it. The
// start script of these images hands its arguments to the server.
func servePostgresTLS(container *corev1ac.ContainerApplyConfiguration, secret string) *corev1ac.VolumeApplyConfiguration {
	settings := []string{
		"-c", "ssl=on",
		"-c", "ssl_cert_file=" + postgresTLSDir + "/" + corev1.TLSCertKey,
		"-c", "ssl_key_file=" + postgresTLSDir + "/" + corev1.TLSPrivateKeyKey,
	}
	if at := len(container.Command); at > 0 { // see ExclusivePostgres
		container.Command[2] += " " + strings.Join(settings, " ")
	} else {
		container.WithArgs("run-postgresql").WithArgs(settings...)
	}
	container.WithVolumeMounts(corev1ac.VolumeMount().WithName(postgresTLSVolume).WithMountPath(postgresTLSDir).WithReadOnly(true))
	source := corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(postgresKeyMode)
	return corev1ac.Volume().WithName(postgresTLSVolume).WithSecret(source)
}

// VerifyPostgres has a client that follows the variables of libpq verify the server with the CA in a Secret. It returns the volume.
// Only the name of the server's certificate is left to sslMode.
func AddPostgresVerification(container *corev1ac.ContainerApplyConfiguration, sslMode, secret string) *corev1ac.VolumeApplyConfiguration {
	const volume, dir = "postgres-ca", "/etc/postgres-ca"
	container.WithEnv(
		corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(sslMode),
		corev1ac.EnvVar().WithName("PGSSLROOTCERT").WithValue(dir+"/"+CAKey),
	).WithVolumeMounts(corev1ac.VolumeMount().WithName(volume).WithMountPath(dir).WithReadOnly(true))
	return corev1ac.Volume().WithName(volume).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).
		WithItems(corev1ac.KeyToPath().WithKey(CAKey).WithPath(CAKey)))
}
