package etcd

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// Copy is the data of the Secret by which the pods of a namespace reach etcd, made from that of the manager's own namespace: the
// state lies below a prefix of the namespace, hosts that only resolve in the manager's namespace get its name, and the files that the
// connection names come along. The account, if there is one, takes the place of the user of the connection.
func Copy(source map[string][]byte, managerNamespace, namespace string, account *Account) (map[string][]byte, error) {
	c, err := Parse(source)
	if err != nil {
		return nil, err
	}
	if _, err := c.Material(source); err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for _, file := range c.Files() {
		data[file] = source[file]
	}
	c.RootPrefix = c.prefixOf(namespace)
	if account != nil {
		c.UserID, c.Password = account.Name, account.Password
	}
	c.Endpoints = qualified(c.Endpoints, managerNamespace)
	if data[Key], err = json.Marshal(c); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", Key, err)
	}
	return data, nil
}

// qualified gives hosts without a dot the name of the namespace in which they are Services. Addresses and names with dots mean the
// same everywhere, and localhost never meant a Service.
func qualified(endpoints, namespace string) string {
	all := strings.Split(endpoints, ",")
	for i, endpoint := range all {
		scheme, rest, found := strings.Cut(endpoint, "://")
		if !found {
			scheme, rest = "", endpoint
		} else {
			scheme += "://"
		}
		end := strings.IndexAny(rest, ":/ ")
		if end < 0 {
			end = len(rest)
		}
		host := rest[:end]
		if host == "" || strings.HasPrefix(rest, "[") || strings.Contains(host, ".") || host == "localhost" || isAddress(rest) {
			continue
		}
		all[i] = scheme + host + "." + namespace + rest[end:]
	}
	return strings.Join(all, ",")
}

// isAddress tells whether a host is an address rather than a name, also one of version 6 without brackets.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
