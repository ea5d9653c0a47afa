package modelmesh

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/meshetcd"
)

// EtcdCopy is the data of the Secret by which the pods of a namespace reach etcd, made from that of the manager's own namespace:
// the state lies below a prefix of the namespace, hosts that only resolve in the manager's namespace get its name, and the files
// that the connection names come along.
func EtcdCopy(source map[string][]byte, managerNamespace, namespace string) (map[string][]byte, error) {
	text, found := source[meshetcd.Key]
	if !found {
		return nil, fmt.Errorf("it has no key %s: add it, a JSON object with endpoints and root_prefix", meshetcd.Key)
	}
	var c meshetcd.Connection
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("key %s is no JSON object of texts: %w", meshetcd.Key, withoutValues(err))
	}
	data := map[string][]byte{}
	for _, file := range []struct{ name, meaning string }{
		{c.CertificateFile, "certificate"}, {c.ClientKeyFile, "key"}, {c.ClientCertificateFile, "client certificate"},
	} {
		if file.name == "" {
			continue
		}
		content, found := source[file.name]
		if !found {
			return nil, fmt.Errorf("referenced TLS %s secret key not found: %s", file.meaning, file.name)
		}
		data[file.name] = content
	}
	c.RootPrefix += "/mm_ns/" + namespace
	c.Endpoints = qualified(c.Endpoints, managerNamespace)
	encoded, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", meshetcd.Key, err)
	}
	data[meshetcd.Key] = encoded
	return data, nil
}

// withoutValues drops what an error quotes of a document that has passwords in it.
func withoutValues(err error) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return fmt.Errorf("%s is a %s", mistyped.Field, strings.Fields(mistyped.Value + " value")[0])
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("it breaks at byte %d", syntax.Offset)
	}
	return errors.New("it cannot be read")
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

// BuildEtcdSecret renders the Secret with data of [EtcdCopy].
func BuildEtcdSecret(name, namespace string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, namespace).
		WithLabels(map[string]string{labelManagedBy: controllerName}).
		WithData(data)
}
