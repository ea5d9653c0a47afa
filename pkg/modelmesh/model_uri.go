package modelmesh

import (
	"fmt"
	"net/url"
	"strings"
)

// azureHosts end the names of hosts that serve Azure's blobs.
const azureHosts = ".blob.core.windows.net"

// fromURI reads a storageUri as what the puller understands: storage parameters and a path. The error names the URI and what
// would be right.
func fromURI(uri string) (parameters map[string]string, path string, err error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, "", fmt.Errorf("parsing storageUri %q: %w: give one such as s3://bucket/path", uri, err)
	}
	path = strings.TrimPrefix(u.Path, "/")
	switch u.Scheme {
	case "pvc":
		return map[string]string{"type": "pvc", "name": u.Host}, path, nil
	case "s3":
		return map[string]string{"type": "s3", "bucket": u.Host}, path, nil
	case "gs":
		return map[string]string{"type": "gcs", "bucket": u.Host}, path, nil
	case "http", "https":
		if strings.HasSuffix(u.Hostname(), azureHosts) {
			account, _, _ := strings.Cut(u.Host, ".")
			container, path, _ := strings.Cut(path, "/")
			return map[string]string{"type": "azure", "account_name": account, "container": container}, path, nil
		}
		server := *u
		server.Path, server.RawPath = "", ""
		return map[string]string{"type": "http", "url": server.String()}, path, nil
	}
	return nil, "", fmt.Errorf("unsupported storageUri scheme %q in %q: use pvc, s3, gs, http or https", u.Scheme, uri)
}
