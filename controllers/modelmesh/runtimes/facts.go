package runtimes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// facts are what a reconcile of one namespace goes by.
type facts struct {
	RenderInputs
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
	return &apply.HeldBackError{Objects: []string{deploymentKind.Kind + " " + inside(f.Namespace, deployment).String()}, Err: f.held}
}

// wanted tells whether any runtime shall have pods.
func (f *facts) wanted() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(f.runtimes)), modelmesh.Runtime.NeedsDeployment)
}

// gather reads them, from memory as long as nothing changed.
func (s *server) gather(ctx context.Context, namespace string) (*facts, error) {
	f := &facts{RenderInputs: RenderInputs{
		Namespace: namespace, Served: s.Served(), OnlyOwn: s.Namespaces.SingleNamespace(), Home: s.Namespaces.OperatorNamespace,
	}}
	var err error
	if f.Settings, err = s.Settings(ctx, namespace); err != nil {
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
	if f.etcd, _, err = s.etcd.Get(ctx, inside(f.Home, f.Settings.EtcdSecretName)); err != nil {
		return nil, err
	}
	if f.storage, f.storageFound, err = s.storage.Get(ctx, inside(namespace, f.Settings.StorageSecretName)); err != nil {
		return nil, err
	}
	return f, s.gatherTLS(ctx, f)
}

// gatherTLS looks at the TLS Secret of the namespace, which pods mount, and for the manager's own calls at the one in its own
// namespace where that one is missing or no good.
func (s *server) gatherTLS(ctx context.Context, f *facts) error {
	name := f.Settings.TLS.SecretName
	if name == "" {
		return nil
	}
	f.tls = &resources.TLSInputs{SecretName: name}
	here, found, err := s.tls.Get(ctx, inside(f.Namespace, name))
	if err != nil {
		return err
	}
	if !found {
		f.tlsProblem = fmt.Errorf("unable to access TLS secret '%s': there is no such Secret in namespace %s; create it", name, f.Namespace)
	}
	f.tls.HasCA, f.pair = here.hasCA, here.pair
	f.noteTLS(f.Namespace, here)
	if f.pair != nil || f.Namespace == f.Home {
		return nil
	}
	own, _, err := s.tls.Get(ctx, inside(f.Home, name))
	f.pair = own.pair
	f.noteTLS(f.Home, own)
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
		if t := f.runtimes[name]; t.NeedsDeployment() {
			s.reports.say(f.Namespace, t.Object, subject, ReasonRefused, text)
		}
	}
}

// owner returns what the Service of a namespace goes with, and whether pods of the namespace must not be able to run as root.
// What is not held in memory is read once.
func (s *server) owner(ctx context.Context, namespace string) (owner client.Object, restricted bool, err error) {
	if s.Namespaces.SingleNamespace() {
		owner, err := s.managerDeployment(ctx, namespace)
		return owner, false, err
	}
	head, err := s.Namespaces.GetMetadata(ctx, namespace)
	if err != nil {
		return nil, false, err
	}
	if head == nil {
		return nil, false, fmt.Errorf("namespace %s, which owns the Service, is gone", namespace)
	}
	return head, head.Labels[modelmesh.LabelEnforce] == "restricted", nil
}

// managerDeployment lasts as long as the manager runs in it.
func (s *server) managerDeployment(ctx context.Context, namespace string) (client.Object, error) {
	if known := s.manager.Load(); known != nil {
		return known, nil
	}
	d, name := &appsv1.Deployment{}, inside(namespace, s.Config.ControllerDeployment)
	err := s.live.Get(ctx, name, d)
	if err != nil {
		err = fmt.Errorf("reading %T %s, which owns the Service: %w", d, name, err)
	}
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: name the Deployment of the manager in CONTROLLER_DEPLOYMENT, and its namespace in NAMESPACE", err)
	}
	if err != nil {
		return nil, err
	}
	s.manager.Store(d)
	return d, nil
}

// noteReferences finds what the Predictors of a namespace refer to and does not exist: the entry of the storage Secret that they name, and
// the claim that lies in their parameters.
func (s *server) noteReferences(ctx context.Context, f *facts) error {
	all := map[string][]reference.Missing{}
	for _, m := range f.models {
		if m.Source != mm.SourcePredictor {
			continue
		}
		missing, err := s.missingOf(ctx, f, m)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			all[m.Name] = missing
		}
	}
	s.MissingReferences.Set(f.Namespace, all)
	return nil
}

func (s *server) missingOf(ctx context.Context, f *facts, m mm.Model) ([]reference.Missing, error) {
	var missing []reference.Missing
	if key := m.StorageKey(); key != nil && *key != "" && !f.storage.keys[*key] {
		lacks := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: f.Settings.StorageSecretName}}
		if f.storageFound {
			lacks.Key = *key
		}
		missing = append(missing, lacks)
	}
	if claim := m.Claim(); claim != "" {
		head, err := capability.GetMetadata(ctx, s.claims, claimKind, inside(f.Namespace, claim))
		if err != nil {
			return nil, err
		}
		if head == nil {
			missing = append(missing, reference.Missing{Reference: reference.Reference{Kind: reference.Claim, Name: claim}})
		}
	}
	return missing, nil
}

// errSpec begins the messages about runtimes that cannot be served.
var errSpec = errors.New("Invalid runtime Spec") //nolint:staticcheck // the original's words

// specProblem says what is wrong with the spec of a runtime; nil for nothing.
func (in RenderInputs) specProblem(t modelmesh.Runtime) error {
	if t.Malformed != "" {
		return fmt.Errorf("%w: %s", errSpec, t.Malformed)
	}
	if problem := mm.Validate(t.Spec, in.Settings.BuiltInServerTypes); problem != nil {
		return fmt.Errorf("%w: %w", errSpec, problem)
	}
	return nil
}

// specs are the specs of runtimes by name.
func specs(runtimes map[string]modelmesh.Runtime) map[string]*v1alpha1.ServingRuntimeSpec {
	out := make(map[string]*v1alpha1.ServingRuntimeSpec, len(runtimes))
	for name, r := range runtimes {
		if r.Object.GetDeletionTimestamp().IsZero() {
			out[name] = r.Spec
		}
	}
	return out
}

// needed tells whether a model of the namespace can be served by a runtime with the given labels.
func needed(models []mm.Model, labels []string) bool {
	return slices.ContainsFunc(models, func(m mm.Model) bool { return mm.Supports(labels, m.Label()) })
}

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
