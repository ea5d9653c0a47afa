package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AdminUser is the user name of the administrator in the audit log.
const AdminUser = "testcluster:admin"

const contextName = "testcluster"

// prepare creates the certificates, the kubeconfigs and the audit policy.
func (i *Instance) prepare() error {
	if err := os.MkdirAll(i.credential(""), 0o700); err != nil {
		return fmt.Errorf("creating the folder of instance %s: %w", i.Name, err)
	}
	ca, err := newAuthority(i.credential(""), i.clock.Now())
	if err != nil {
		return err
	}
	if err := issueFrontProxy(i.credential(""), i.clock.Now()); err != nil {
		return err
	}
	for _, s := range i.subjects() {
		if err := ca.issue(s); err != nil {
			return err
		}
		if len(s.hosts) > 0 {
			continue // a server needs no kubeconfig
		}
		if err := i.certificateKubeconfig(i.credential(s.file+".kubeconfig"), s.file); err != nil {
			return err
		}
	}
	if err := i.certificateKubeconfig(i.Kubeconfig(), "admin"); err != nil {
		return err
	}
	if err := writeFile(i.file("audit-policy.yaml"), auditPolicy); err != nil {
		return err
	}
	return nil
}

func (i *Instance) certificateKubeconfig(path, file string) error {
	certificate, err := os.ReadFile(i.credential(file + ".crt"))
	if err != nil {
		return fmt.Errorf("reading the certificate of %s: %w", file, err)
	}
	key, err := os.ReadFile(i.credential(file + ".key"))
	if err != nil {
		return fmt.Errorf("reading the key of %s: %w", file, err)
	}
	return i.writeKubeconfig(path, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}, "default")
}

// WriteTokenKubeconfig writes a kubeconfig with a bearer token, for example of a ServiceAccount, and the namespace of its context.
func (i *Instance) WriteTokenKubeconfig(path, token, namespace string) error {
	return i.writeKubeconfig(path, &clientcmdapi.AuthInfo{Token: token}, namespace)
}

func (i *Instance) writeKubeconfig(path string, user *clientcmdapi.AuthInfo, namespace string) error {
	ca, err := os.ReadFile(i.credential("ca.crt"))
	if err != nil {
		return fmt.Errorf("reading the CA: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: i.URL(), CertificateAuthorityData: ca}
	config.AuthInfos[contextName] = user
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName, Namespace: namespace}
	config.CurrentContext = contextName
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return writeFile(path, content)
}

// Config returns the administrator's client configuration, without client-side rate limits.
func (i *Instance) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", i.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of instance %s: %w", i.Name, err)
	}
	config.QPS = -1
	return config, nil
}
