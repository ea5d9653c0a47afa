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

// Variables that the kubelet fills into the address of the database.
const (
	envPostgresPassword = "POSTGRES_PASSWORD"
	envMySQLPassword    = "MYSQL_PASSWORD"
	// envPostgresURI is the whole address, with user and password, which a Secret of an operator of databases has escaped already.
	envPostgresURI = "POSTGRES_URI"
)

// hostFormat is a DNS name or an IPv4 address, and in lists of PostgreSQL a port of its own.
var (
	hostFormat     = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?$`)
	hostPortFormat = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?(:[0-9]{1,5})?$`)
)

// pasted is text that a URL holds unchanged, because it is harmless or was escaped by its author.
var urlSafe = regexp.MustCompile(`^([-A-Za-z0-9._~]|%[0-9A-Fa-f]{2})*$`)

// postgresDSN is the address of a PostgreSQL database as a URL. The kubelet puts the password in its place.
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

// sslMode ends the address of a database.
func sslModeQuery(p *v1beta1.PostgresConfig) string {
	if p.SSLMode == "" {
		return ""
	}
	return "?sslmode=" + escapeURL(string(p.SSLMode))
}

// postgresHosts are the hosts as a URL holds them: one, or several that the client tries in turn.
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
			return "", errors.New("is neither a host name nor an IP address")
		}
	}
	return strings.Join(all, ","), nil
}

// mysqlDSN is the address of a MySQL database in the notation of its Go driver, which ends the user at the first colon, the
// password at the last @, and takes the database from the last slash.
func mysqlDSN(c *v1beta1.MySQLConfig) (string, error) {
	host := trimBrackets(c.Host)
	switch {
	case host == "":
		host = "localhost"
	case isIPv6(host):
		host = "[" + host + "]"
	case !hostFormat.MatchString(host):
		return "", fmt.Errorf("spec.mysql.host %q is neither a host name nor an IP address", c.Host)
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

// bare takes the brackets off an IPv6 address: the originals pasted hosts, so that such an address had to be written in them.
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

func portString(number *int32, otherwise int32) string {
	return strconv.Itoa(int(orDefault(number, otherwise)))
}

// escaped is text as part of a URL. Text that was escaped by its author stays as it is: the originals pasted it.
func escapeURL(text string) string {
	if urlSafe.MatchString(text) {
		return text
	}
	// QueryEscape leaves nothing but letters, digits, - _ . ~ and the plus sign for a space.
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// literal keeps a kubelet from filling in $(NAME) in a text of a user.
func escapeExpansion(text string) string { return strings.ReplaceAll(text, "$", "$$") }
