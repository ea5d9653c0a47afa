package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// explain is an error in words for its user. What API server and network say is completed by what to do about it.
func explain(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if apierrors.IsUnauthorized(err) {
		return "the API server does not know who you are: log in again, or choose another user with --context (" + text + ")"
	}
	failed, is := errors.AsType[*url.Error](err)
	if !is {
		return text
	}
	server := "the API server"
	if address, err := url.Parse(failed.URL); err == nil && address.Host != "" {
		server += " at " + address.Scheme + "://" + address.Host
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return fmt.Sprintf("%s has a certificate that is not trusted: %v; the kubeconfig names whom to trust, in certificate-authority of its cluster", server, failed.Err)
	}
	if failed.Timeout() {
		return fmt.Sprintf("%s does not answer in time: %v; --request-timeout gives it more", server, failed.Err)
	}
	return fmt.Sprintf("%s cannot be reached: %v; is the cluster up, and is it the right one? --context and --kubeconfig choose another", server, failed.Err)
}

// notFound says why the flags lead to no cluster, and what to do.
func (o *Options) notFound(err error) error {
	loader, chosen := o.Config.ToRawKubeConfigLoader(), *o.Config.Context
	config, _ := loader.RawConfig() // empty where it cannot be read, and then err says why
	known := slices.Sorted(maps.Keys(config.Contexts))
	choose := "choose one of " + strings.Join(known, ", ") + " with --context"
	_, exists := config.Contexts[chosen]
	switch {
	case len(known) == 0 && clientcmd.IsEmptyConfig(err):
		files := strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), " or ")
		return fmt.Errorf("finding the cluster: there is no kubeconfig in %s; set KUBECONFIG to the path of one, or use --kubeconfig", files)
	case len(known) > 0 && chosen == "" && config.CurrentContext == "":
		return fmt.Errorf("finding the cluster: the kubeconfig has no current context; %s", choose)
	case len(known) > 0 && chosen != "" && !exists:
		return fmt.Errorf("finding the cluster: context %q does not exist; %s", chosen, choose)
	}
	return fmt.Errorf("finding the cluster: %w; set KUBECONFIG, or use --kubeconfig or --context", err)
}
