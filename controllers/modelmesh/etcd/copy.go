package etcd

import (
	"encoding/json"
	"net/netip"
	"strings"
)

// Copy returns the data of the Secret with which the pods of a namespace connect to etcd. It is derived from the Secret in the operator's
// namespace: Copy sets the key prefix of the namespace, adds the operator's namespace to unqualified hosts, and copies referenced files.
// account, if not nil, replaces the user of the connection.
func Copy(source map[string][]byte, operatorNamespace, namespace string, account *Account) (map[string][]byte, error) {
	connection, err := Parse(source)
	if err != nil {
		return nil, err
	}
	if _, err := connection.Material(source); err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for _, file := range connection.Files() {
		data[file] = source[file]
	}
	connection.RootPrefix = connection.namespacePrefix(namespace)
	if account != nil {
		connection.UserID, connection.Password = account.Name, account.Password
	}
	connection.Endpoints = qualifyHosts(connection.Endpoints, operatorNamespace)
	data[ConnectionKey], _ = json.Marshal(connection) // encoding strings cannot fail
	return data, nil
}

// qualifyHosts adds the namespace to hosts without a dot, which are names of Services. It keeps addresses and localhost.
func qualifyHosts(endpoints, namespace string) string {
	parts := strings.Split(endpoints, ",")
	for i, endpoint := range parts {
		_, rest, found := strings.Cut(endpoint, "://")
		if !found {
			rest = strings.TrimLeft(endpoint, " ")
		}
		host := rest
		if end := strings.IndexAny(rest, ":/ "); end >= 0 {
			host = rest[:end]
		}
		_, err := netip.ParseAddr(rest)
		isAddress := err == nil || strings.HasPrefix(rest, "[") // ParseAddr rejects an IPv6 address in brackets
		if host == "" || isAddress || strings.Contains(host, ".") || host == "localhost" {
			continue
		}
		parts[i] = strings.TrimSuffix(endpoint, rest) + host + "." + namespace + strings.TrimPrefix(rest, host)
	}
	return strings.Join(parts, ",")
}
