package resources

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Flags and environment variables of the server, and the mode of the files that it reads.
const (
	flagType       = "--embedmd-database-type="
	FlagDSN        = "--embedmd-database-dsn="
	flagCert       = "--embedmd-database-ssl-cert="
	flagKey        = "--embedmd-database-ssl-key="
	flagRootCert   = "--embedmd-database-ssl-root-cert="
	flagCA         = "--embedmd-database-ssl-ca="
	flagCipher     = "--embedmd-database-ssl-cipher="
	flagVerify     = "--embedmd-database-ssl-verify-server-cert="
	secretFileMode = int32(0o600)
	envSSLPassword = "POSTGRES_SSLPASSWORD"
	// envVerify makes the server verify the host name of the database. Without it, any TLS file makes the server use sslmode "require".
	envVerify = "MR_EMBEDMD_DATABASE_SSL_VERIFY_SERVER_CERT"
)

// backend holds arguments, variables and volumes of the server for its database.
type backend struct {
	args    []string
	env     []*corev1ac.EnvVarApplyConfiguration
	volumes []*corev1ac.VolumeApplyConfiguration
	mounts  []*corev1ac.VolumeMountApplyConfiguration
}

// buildBackend returns the backend for the database of the spec. PostgreSQL has precedence.
func buildBackend(m *v1beta1.ModelRegistry) (backend, error) {
	switch {
	case m.Spec.Postgres != nil:
		return postgresBackend(m.Spec.Postgres)
	case m.Spec.MySQL != nil:
		return mysqlBackend(m.Spec.MySQL)
	}
	return backend{}, errors.New("spec names no database: set spec.postgres or spec.mysql")
}

func postgresBackend(p *v1beta1.PostgresConfig) (backend, error) {
	dsn, err := postgresDSN(p)
	if err != nil {
		return backend{}, err
	}
	b := backend{args: []string{flagType + "postgres", FlagDSN + dsn}}
	if p.ConnectionSecretName != "" {
		b.env = append(b.env, resources.SecretEnvVar(envPostgresURI, p.ConnectionSecretName, resources.ConnectionURIKey))
	} else {
		b.addSecretEnv(envPostgresPassword, p.PasswordSecret)
	}
	b.addSecretEnv(envSSLPassword, p.SSLPasswordSecret)
	if p.SSLMode == resources.VerifyFull {
		b.env = append(b.env, corev1ac.EnvVar().WithName(envVerify).WithValue("true"))
	}
	return b, errors.Join(
		b.mountFile(flagCert, "postgres-ssl-cert", "spec.postgres.sslCertificateSecret", p.SSLCertificateSecret, nil),
		b.mountFile(flagKey, "postgres-ssl-key", "spec.postgres.sslKeySecret", p.SSLKeySecret, nil),
		b.mountFile(flagRootCert, "postgres-ssl-rootcert", "spec.postgres.sslRootCertificate", p.SSLRootCertificateSecret, p.SSLRootCertificateConfigMap),
	)
}

func mysqlBackend(c *v1beta1.MySQLConfig) (backend, error) {
	dsn, err := mysqlDSN(c)
	if err != nil {
		return backend{}, err
	}
	b := backend{args: []string{flagType + "mysql", FlagDSN + dsn}}
	b.addSecretEnv(envMySQLPassword, c.PasswordSecret)
	err = errors.Join(
		b.mountFile(flagCert, "mysql-ssl-cert", "spec.mysql.sslCertificateSecret", c.SSLCertificateSecret, nil),
		b.mountFile(flagKey, "mysql-ssl-key", "spec.mysql.sslKeySecret", c.SSLKeySecret, nil),
		b.mountFile(flagRootCert, "mysql-ssl-rootcert", "spec.mysql.sslRootCertificate", c.SSLRootCertificateSecret, c.SSLRootCertificateConfigMap),
	)
	b.mountDirectory("mysql-ssl-rootcerts", c.SSLRootCertificatesSecretName, c.SSLRootCertificatesConfigMapName)
	if c.SSLCipher != "" {
		b.args = append(b.args, flagCipher+escapeExpansion(c.SSLCipher))
	}
	if c.VerifyServerCert != nil {
		b.args = append(b.args, flagVerify+strconv.FormatBool(*c.VerifyServerCert))
	}
	return b, err
}

// addSecretEnv adds a variable with the value of a Secret key, unless from is nil.
func (b *backend) addSecretEnv(name string, from *v1beta1.SecretKeyValue) {
	if from != nil {
		b.env = append(b.env, resources.SecretEnvVar(name, from.Name, from.Key))
	}
}

// mountFile mounts a key of the ConfigMap, or else of the Secret, and adds the flag with its path.
func (b *backend) mountFile(flag, volume, field string, secret *v1beta1.SecretKeyValue, configMap *v1beta1.ConfigMapKeyValue) error {
	var key string
	switch {
	case configMap != nil:
		b.addVolume(volume, configMapVolume(volume, configMap.Name))
		key = configMap.Key
	case secret != nil:
		b.addVolume(volume, secretVolume(volume, secret.Name))
		key = secret.Key
	default:
		return nil
	}
	b.args = append(b.args, flag+path.Join(mountPath(volume), key))
	return checkKey(field, key)
}

// checkKey rejects invalid keys, which could be paths outside of the volume.
func checkKey(field, key string) error {
	if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
		return fmt.Errorf("%s names key %q: %s", field, key, strings.Join(problems, "; "))
	}
	return nil
}

// mountDirectory mounts all keys of the ConfigMap, or else of the Secret, and adds the flag with the directory.
func (b *backend) mountDirectory(volume, secret, configMap string) {
	switch {
	case configMap != "":
		b.addVolume(volume, configMapVolume(volume, configMap))
	case secret != "":
		b.addVolume(volume, secretVolume(volume, secret))
	default:
		return
	}
	b.args = append(b.args, flagCA+mountPath(volume)+"/")
}

func (b *backend) addVolume(name string, volume *corev1ac.VolumeApplyConfiguration) {
	b.volumes = append(b.volumes, volume)
	b.mounts = append(b.mounts, corev1ac.VolumeMount().WithName(name).WithMountPath(mountPath(name)).WithReadOnly(true))
}

func mountPath(volume string) string { return "/etc/" + strings.ReplaceAll(volume, "-", "_") }

func secretVolume(name, secret string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).
		WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(secretFileMode))
}

func configMapVolume(name, configMap string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).
		WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(configMap).WithDefaultMode(secretFileMode))
}
