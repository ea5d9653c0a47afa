package runtimes

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// facts are what a reconcile of one namespace goes by.
type facts struct {
	namespace string
	settings  meshsettings.Settings
	// owner of the Service: the Namespace, or in the scope of one namespace the Deployment of the manager.
	owner client.Object
	// restricted: pods that could run as root are not let in.
	restricted bool
	runtimes   map[string]modelmesh.Runtime
	models     []mm.Model
	// etcd is the content of the Secret in the manager's namespace; nil while there is none.
	etcd map[string][]byte
	// tls is nil where traffic is not encrypted; tlsProblem says why runtimes cannot have their certificate, and tlsNotes what is
	// wrong with Secrets that are there.
	tls        *resources.TLSInputs
	tlsProblem error
	tlsNotes   []string
	// pair is what the manager itself talks with.
	pair    *meshclient.KeyPair
	storage storageContent
	// storageFound tells that there is a Secret of storage entries.
	storageFound bool
	// held says what has to stand before any Deployment is written, and does not; nil where all of it does.
	held error
}

// waits says that the Deployment of a runtime waits for its guards; nil when it does not.
func (f *facts) waits(deployment string) error {
	if f.held == nil {
		return nil
	}
	return &apply.HeldBackError{Objects: []string{deploymentKind.Kind + " " + inside(f.namespace, deployment).String()}, Err: f.held}
}

// wanted tells whether any runtime shall have pods.
func (f *facts) wanted() bool {
	for _, t := range f.runtimes {
		if t.Wanted() {
			return true
		}
	}
	return false
}

// gather reads them, from memory as long as nothing changed.
func (s *server) gather(ctx context.Context, namespace string) (*facts, error) {
	f := &facts{namespace: namespace}
	var err error
	if f.settings, err = s.Settings(ctx, namespace); err != nil {
		return nil, err
	}
	if f.owner, f.restricted, err = s.owner(ctx, namespace); err != nil {
		return nil, err
	}
	if f.runtimes, err = s.Runtimes(ctx, namespace); err != nil {
		return nil, err
	}
	if f.models, err = s.Models(ctx, namespace); err != nil {
		return nil, err
	}
	if f.etcd, _, err = s.etcd.get(ctx, inside(s.Namespaces.Own(), f.settings.EtcdSecretName)); err != nil {
		return nil, err
	}
	if f.storage, f.storageFound, err = s.storage.get(ctx, inside(namespace, f.settings.StorageSecretName)); err != nil {
		return nil, err
	}
	return f, s.gatherTLS(ctx, f)
}

// gatherTLS looks at the TLS Secret of the namespace, which pods mount, and for the manager's own calls at the one in its own
// namespace where that one is missing or no good.
func (s *server) gatherTLS(ctx context.Context, f *facts) error {
	name := f.settings.TLS.SecretName
	if name == "" {
		return nil
	}
	f.tls = &resources.TLSInputs{SecretName: name}
	here, found, err := s.tls.get(ctx, inside(f.namespace, name))
	if err != nil {
		return err
	}
	if !found {
		f.tlsProblem = fmt.Errorf("unable to access TLS secret '%s': there is no such Secret in namespace %s; create it", name, f.namespace)
	}
	f.tls.HasCA, f.pair = here.hasCA, here.pair
	f.noteTLS(f.namespace, here)
	if f.pair != nil || f.namespace == s.Namespaces.Own() {
		return nil
	}
	own, _, err := s.tls.get(ctx, inside(s.Namespaces.Own(), name))
	f.pair = own.pair
	f.noteTLS(s.Namespaces.Own(), own)
	return err
}

// noteTLS keeps what is wrong with the content of a TLS Secret, if anything.
func (f *facts) noteTLS(namespace string, content tlsContent) {
	if content.err != nil {
		f.tlsNotes = append(f.tlsNotes, fmt.Sprintf("%v, in namespace %s: correct it", content.err, namespace))
	}
}

// refuseAll tells every runtime of a namespace what keeps all of them from being served; an empty text that nothing does.
func (s *server) refuseAll(f *facts, subject, text string) {
	for _, name := range sortedNames(f.runtimes) {
		if t := f.runtimes[name]; t.Wanted() {
			s.reports.say(f.namespace, t.Object, subject, ReasonRefused, text)
		}
	}
}
