package resources

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// Variables that the kubelet expands in the URL of the database.
const (
	envPostgresPassword = "POSTGRES_PASSWORD"
	envMySQLPassword    = "MYSQL_PASSWORD"
	// envPostgresURI is the whole URL with user and password, escaped by the operator of the database that created the Secret.
	envPostgresURI = "POSTGRES_URI"
)

// hostFormat matches a DNS name or an IPv4 address. hostPortFormat also accepts a port, as in host lists of PostgreSQL.
var (
	hostFormat     = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?$`)
	hostPortFormat = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?(:[0-9]{1,5})?$`)
)

// urlSafe matches text that needs no escaping, or that the user has escaped.
var urlSafe = regexp.MustCompile(`^([-A-Za-z0-9._~]|%[0-9A-Fa-f]{2})*$`)

// postgresDSN returns the URL of a PostgreSQL database. The kubelet expands the password.
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
	return "postgresql://" + user + hosts + ":" + portString(p.Port, v1beta1.DefaultPostgresPort) + "/" + escapeURL(p.Database) + sslModeQuery(p), nil
}

// sslModeQuery returns the query of the URL.
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
	// QueryEscape leaves nothing but letters, digits, - _ . ~ and the plus sign for a space.
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// escapeExpansion prevents the expansion of $(NAME) by the kubelet.
func escapeExpansion(text string) string { return strings.ReplaceAll(text, "$", "$$") }
