package resources

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
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
	flagCert       = "--embedmd-database-ssl-cert="
	flagKey        = "--embedmd-database-ssl-key="
	flagRootCert   = "--embedmd-database-ssl-root-cert="
	flagCA         = "--embedmd-database-ssl-ca="
	flagCipher     = "--embedmd-database-ssl-cipher="
	flagVerify     = "--embedmd-database-ssl-verify-server-cert="
	secretFileMode = int32(0o600)
	envSSLPassword = "POSTGRES_SSLPASSWORD"
	// EnvDSN is the variable with the address of the database. An argument must not contain the password, because all processes of a node
	// can read arguments.
	EnvDSN = "MR_EMBEDMD_DATABASE_DSN"
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
	b := backend{args: []string{flagType + "postgres"}}
	if p.ConnectionSecretName != "" {
		b.env = append(b.env, resources.SecretEnvVar(envPostgresURI, p.ConnectionSecretName, resources.ConnectionURIKey))
	} else {
		b.addSecretEnv(envPostgresPassword, p.PasswordSecret)
	}
	b.addDSN(dsn)
	b.addSecretEnv(envSSLPassword, p.SSLPasswordSecret)
	if p.SSLMode == resources.VerifyFull {
		b.env = append(b.env, corev1ac.EnvVar().WithName(envVerify).WithValue("true"))
	}
	return b, errors.Join(
		b.mountFile(flagCert, "postgres-ssl-cert", "spec.postgres.sslCertificate", p.SSLCertificateSecret, nil),
		b.mountFile(flagKey, "postgres-ssl-key", "spec.postgres.sslKey", p.SSLKeySecret, nil),
		b.mountFile(flagRootCert, "postgres-ssl-rootcert", "spec.postgres.sslRootCertificate", p.SSLRootCertificateSecret, p.SSLRootCertificateConfigMap),
	)
}

func mysqlBackend(c *v1beta1.MySQLConfig) (backend, error) {
	dsn, err := mysqlDSN(c)
	if err != nil {
		return backend{}, err
	}
	b := backend{args: []string{flagType + "mysql"}}
	b.addSecretEnv(envMySQLPassword, c.PasswordSecret)
	b.addDSN(dsn)
	err = errors.Join(
		b.mountFile(flagCert, "mysql-ssl-cert", "spec.mysql.sslCertificate", c.SSLCertificateSecret, nil),
		b.mountFile(flagKey, "mysql-ssl-key", "spec.mysql.sslKey", c.SSLKeySecret, nil),
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

// addDSN adds the address of the database after the variables to which it refers, because the kubelet expands only those before it.
func (b *backend) addDSN(dsn string) {
	b.env = append(b.env, corev1ac.EnvVar().WithName(EnvDSN).WithValue(dsn))
}

// mountFile mounts the ConfigMap, or else the Secret, and adds the flag with the path of the key. The parameter field is the field of the
// spec without the suffix ConfigMap or Secret.
func (b *backend) mountFile(flag, volume, field string, secret *v1beta1.SecretKeyValue, configMap *v1beta1.ConfigMapKeyValue) error {
	var key string
	switch {
	case configMap != nil:
		b.addVolume(volume, "", configMap.Name)
		key, field = configMap.Key, field+"ConfigMap"
	case secret != nil:
		b.addVolume(volume, secret.Name, "")
		key, field = secret.Key, field+"Secret"
	default:
		return nil
	}
	b.args = append(b.args, flag+path.Join(mountPath(volume), key))
	return checkKey(field, key)
}

// checkKey returns an error for an invalid key, which could be a path outside of the volume.
func checkKey(field, key string) error {
	if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
		return fmt.Errorf("%s names key %q: %s", field, key, strings.Join(problems, "; "))
	}
	return nil
}

// mountDirectory mounts all keys of the ConfigMap, or else of the Secret, and adds the flag with the directory.
func (b *backend) mountDirectory(volume, secret, configMap string) {
	if secret != "" || configMap != "" {
		b.addVolume(volume, secret, configMap)
		b.args = append(b.args, flagCA+mountPath(volume)+"/")
	}
}

// addVolume mounts a ConfigMap, or else a Secret.
func (b *backend) addVolume(name, secret, configMap string) {
	volume := corev1ac.Volume().WithName(name)
	if configMap != "" {
		volume.WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(configMap).WithDefaultMode(secretFileMode))
	} else {
		volume.WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(secretFileMode))
	}
	b.volumes = append(b.volumes, volume)
	b.mounts = append(b.mounts, resources.ReadOnlyMount(name, mountPath(name)))
}

func mountPath(volume string) string { return "/etc/" + strings.ReplaceAll(volume, "-", "_") }

// Variables that the kubelet expands in the address of the database.
const (
	envPostgresPassword = "POSTGRES_PASSWORD"
	envMySQLPassword    = "MYSQL_PASSWORD"
	// envPostgresURI is the whole URL with user and password, escaped by the operator of the database that created the Secret.
	envPostgresURI = "POSTGRES_URI"
)

// hostFormat matches a DNS name or an IPv4 address. hostPortFormat also accepts a port, as in host lists of PostgreSQL.
// lastHostWithPort matches a list whose last host has a port.
var (
	hostFormat       = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?$`)
	lastHostWithPort = regexp.MustCompile(`:[0-9]{1,5}$`)
	hostPortFormat   = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?(:[0-9]{1,5})?$`)
)

// urlSafe matches text that needs no escaping, or that the user has escaped.
var urlSafe = regexp.MustCompile(`^([-A-Za-z0-9._~]|%[0-9A-Fa-f]{2})*$`)

// postgresDSN returns the URL of a PostgreSQL database. The kubelet expands the variables.
func postgresDSN(p *v1beta1.PostgresConfig) (string, error) {
	if p.ConnectionSecretName != "" {
		return "$(" + envPostgresURI + ")" + sslModeQuery(p), nil
	}
	field, host := "host", p.Host
	if host == "" {
		field, host = "hostAddress", p.HostAddress
	}
	hosts, err := postgresHosts(host)
	if err != nil {
		return "", fmt.Errorf("spec.postgres.%s %q %w", field, host, err)
	}
	user := escapeURL(p.Username)
	if p.PasswordSecret != nil {
		user += ":$(" + envPostgresPassword + ")"
	}
	if user != "" {
		user += "@"
	}
	if !lastHostWithPort.MatchString(hosts) {
		hosts += ":" + portString(p.Port, v1beta1.DefaultPostgresPort)
	}
	return "postgresql://" + user + hosts + "/" + escapeURL(p.Database) + sslModeQuery(p), nil
}

func sslModeQuery(p *v1beta1.PostgresConfig) string {
	if p.SSLMode == "" {
		return ""
	}
	return "?sslmode=" + escapeURL(string(p.SSLMode))
}

// postgresHosts returns the host part of the URL: one host, or several that the client tries in turn.
func postgresHosts(hosts string) (string, error) {
	if hosts == "" {
		return "", errors.New("is missing: name the server, or set spec.postgres.generateDeployment")
	}
	var all []string
	for _, host := range strings.Split(hosts, ",") {
		host = trimBrackets(host)
		switch {
		case isIPv6(host):
			all = append(all, "["+host+"]")
		case hostPortFormat.MatchString(host):
			all = append(all, host)
		default:
			return "", errors.New("must be host names or IP addresses")
		}
	}
	return strings.Join(all, ","), nil
}

// mysqlDSN returns the data source name for the MySQL driver of Go. The first colon ends the user, the last @ the password, and the
// database follows the last slash.
func mysqlDSN(c *v1beta1.MySQLConfig) (string, error) {
	host := trimBrackets(c.Host)
	switch {
	case host == "":
		host = "localhost"
	case isIPv6(host):
		host = "[" + host + "]"
	case !hostFormat.MatchString(host):
		return "", fmt.Errorf("spec.mysql.host %q must be a host name or an IP address", c.Host)
	}
	if strings.Contains(c.Username, ":") {
		return "", fmt.Errorf("spec.mysql.username %q must not contain a colon, because a colon ends the user name in the address of the database", c.Username)
	}
	user := escapeExpansion(c.Username)
	if c.PasswordSecret != nil {
		user += ":$(" + envMySQLPassword + ")"
	}
	return user + "@tcp(" + host + ":" + portString(c.Port, v1beta1.DefaultMySQLPort) + ")/" + escapeURL(c.Database) + "?charset=utf8mb4", nil
}

// trimBrackets removes the brackets of an IPv6 address, which the legacy operator required.
func trimBrackets(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok && isIPv6(inner) {
			return inner
		}
	}
	return host
}

func isIPv6(host string) bool {
	address := net.ParseIP(host)
	return address != nil && strings.Contains(host, ":")
}

func portString(value *int32, fallback int32) string {
	return strconv.Itoa(int(orDefault(value, fallback)))
}

// escapeURL escapes text for a URL. Text that the user has escaped is not changed, because the legacy operator did not escape it.
func escapeURL(text string) string {
	if urlSafe.MatchString(text) {
		return text
	}
	// QueryEscape escapes all characters except letters, digits and - _ . ~, and replaces a space by a plus sign.
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// escapeExpansion prevents the expansion of $(NAME) by the kubelet.
func escapeExpansion(text string) string { return strings.ReplaceAll(text, "$", "$$") }
