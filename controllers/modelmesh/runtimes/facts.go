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
type namespaceState struct {
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
	tls                 *resources.TLSInputs
	errTLSSecretMissing error
	tlsWarnings         []string
	// pair is what the manager itself talks with.
	clientKeyPair *meshclient.KeyPair
	storage       storageContent
	// storageFound tells that there is a Secret of storage entries.
	storageSecretExists bool
	// held says what has to stand before any Deployment is written, and does not; nil where all of it does.
	errPrerequisites error
}

// waits says that the Deployment of a runtime waits for its guards; nil when it does not.
func (f *namespaceState) blockedError(deployment string) error {
	if f.errPrerequisites == nil {
		return nil
	}
	return &apply.HeldBackError{Objects: []string{deploymentKind.Kind + " " + namespacedName(f.Namespace, deployment).String()}, Err: f.errPrerequisites}
}

// wanted tells whether any runtime shall have pods.
func (f *namespaceState) needsDeployments() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(f.runtimes)), modelmesh.Runtime.NeedsDeployment)
}

// gather reads them, from memory as long as nothing changed.
func (r *runtimeReconciler) collectState(ctx context.Context, namespace string) (*namespaceState, error) {
	f := &namespaceState{RenderInputs: RenderInputs{
		Namespace: namespace, Served: r.Served(), SingleNamespace: r.Namespaces.SingleNamespace(), OperatorNamespace: r.Namespaces.OperatorNamespace,
	}}
	var err error
	if f.Settings, err = r.Settings(ctx, namespace); err != nil {
		return nil, err
	}
	if f.owner, f.restricted, err = r.serviceOwner(ctx, namespace); err != nil {
		return nil, err
	}
	if f.runtimes, err = r.Runtimes(ctx, namespace); err != nil {
		return nil, err
	}
	if f.models, err = r.Models(ctx, namespace); err != nil {
		return nil, err
	}
	if f.etcd, _, err = r.etcd.Get(ctx, namespacedName(f.OperatorNamespace, f.Settings.EtcdSecretName)); err != nil {
		return nil, err
	}
	if f.storage, f.storageSecretExists, err = r.storage.Get(ctx, namespacedName(namespace, f.Settings.StorageSecretName)); err != nil {
		return nil, err
	}
	return f, r.collectTLS(ctx, f)
}

// gatherTLS looks at the TLS Secret of the namespace, which pods mount, and for the manager's own calls at the one in its own
// namespace where that one is missing or no good.
func (r *runtimeReconciler) collectTLS(ctx context.Context, f *namespaceState) error {
	name := f.Settings.TLS.SecretName
	if name == "" {
		return nil
	}
	f.tls = &resources.TLSInputs{SecretName: name}
	here, found, err := r.tls.Get(ctx, namespacedName(f.Namespace, name))
	if err != nil {
		return err
	}
	if !found {
		f.errTLSSecretMissing = fmt.Errorf("unable to access TLS secret '%s': there is no such Secret in namespace %s; create it", name, f.Namespace)
	}
	f.tls.HasCA, f.clientKeyPair = here.hasCA, here.pair
	f.addTLSWarning(f.Namespace, here)
	if f.clientKeyPair != nil || f.Namespace == f.OperatorNamespace {
		return nil
	}
	own, _, err := r.tls.Get(ctx, namespacedName(f.OperatorNamespace, name))
	f.clientKeyPair = own.pair
	f.addTLSWarning(f.OperatorNamespace, own)
	return err
}

// noteTLS keeps what is wrong with the content of a TLS Secret, if anything.
func (f *namespaceState) addTLSWarning(namespace string, content tlsContent) {
	if content.err != nil {
		f.tlsWarnings = append(f.tlsWarnings, fmt.Sprintf("%v, in namespace %s: correct it", content.err, namespace))
	}
}

// refuseAll tells every runtime of a namespace what keeps all of them from being served; an empty text that nothing does.
func (r *runtimeReconciler) reportToAllRuntimes(f *namespaceState, subject, text string) {
	for _, name := range sortedNames(f.runtimes) {
		if t := f.runtimes[name]; t.NeedsDeployment() {
			r.reporter.warn(f.Namespace, t.Object, subject, ReasonRefused, text)
		}
	}
}

// owner returns what the Service of a namespace goes with, and whether pods of the namespace must not be able to run as root.
// What is not held in memory is read once.
func (r *runtimeReconciler) serviceOwner(ctx context.Context, namespace string) (owner client.Object, restricted bool, err error) {
	if r.Namespaces.SingleNamespace() {
		owner, err := r.getOperatorDeployment(ctx, namespace)
		return owner, false, err
	}
	head, err := r.Namespaces.GetMetadata(ctx, namespace)
	if err != nil {
		return nil, false, err
	}
	if head == nil {
		return nil, false, fmt.Errorf("namespace %s, which owns the Service, is gone", namespace)
	}
	return head, head.Labels[modelmesh.LabelEnforce] == "restricted", nil
}

// managerDeployment lasts as long as the manager runs in it.
func (r *runtimeReconciler) getOperatorDeployment(ctx context.Context, namespace string) (client.Object, error) {
	if known := r.operatorDeployment.Load(); known != nil {
		return known, nil
	}
	d, name := &appsv1.Deployment{}, namespacedName(namespace, r.Config.ControllerDeployment)
	err := r.live.Get(ctx, name, d)
	if err != nil {
		err = fmt.Errorf("reading %T %s, which owns the Service: %w", d, name, err)
	}
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: name the Deployment of the manager in CONTROLLER_DEPLOYMENT, and its namespace in NAMESPACE", err)
	}
	if err != nil {
		return nil, err
	}
	r.operatorDeployment.Store(d)
	return d, nil
}

// noteReferences finds what the Predictors of a namespace refer to and does not exist: the entry of the storage Secret that they name, and
// the claim that lies in their parameters.
func (r *runtimeReconciler) updateMissingReferences(ctx context.Context, f *namespaceState) error {
	all := map[string][]reference.Missing{}
	for _, m := range f.models {
		if m.Source != mm.SourcePredictor {
			continue
		}
		missing, err := r.findMissingReferences(ctx, f, m)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			all[m.Name] = missing
		}
	}
	r.MissingReferences.Set(f.Namespace, all)
	return nil
}

func (r *runtimeReconciler) findMissingReferences(ctx context.Context, f *namespaceState, m mm.Model) ([]reference.Missing, error) {
	var missing []reference.Missing
	if key := m.StorageKey(); key != nil && *key != "" && !f.storage.keys[*key] {
		lacks := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: f.Settings.StorageSecretName}}
		if f.storageSecretExists {
			lacks.Key = *key
		}
		missing = append(missing, lacks)
	}
	if claim := m.Claim(); claim != "" {
		head, err := capability.GetMetadata(ctx, r.claims, pvcKind, namespacedName(f.Namespace, claim))
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
var errInvalidSpec = errors.New("Invalid runtime Spec") //nolint:staticcheck // the original's words

// specProblem says what is wrong with the spec of a runtime; nil for nothing.
func (in RenderInputs) validateSpec(t modelmesh.Runtime) error {
	if t.Malformed != "" {
		return fmt.Errorf("%w: %s", errInvalidSpec, t.Malformed)
	}
	if problem := mm.Validate(t.Spec, in.Settings.BuiltInServerTypes); problem != nil {
		return fmt.Errorf("%w: %w", errInvalidSpec, problem)
	}
	return nil
}

// specs are the specs of runtimes by name.
func specsByName(runtimes map[string]modelmesh.Runtime) map[string]*v1alpha1.ServingRuntimeSpec {
	out := make(map[string]*v1alpha1.ServingRuntimeSpec, len(runtimes))
	for name, r := range runtimes {
		if r.Object.GetDeletionTimestamp().IsZero() {
			out[name] = r.Spec
		}
	}
	return out
}

// needed tells whether a model of the namespace can be served by a runtime with the given labels.
func hasModelFor(models []mm.Model, labels []string) bool {
	return slices.ContainsFunc(models, func(m mm.Model) bool { return mm.HasLabels(labels, m.Label()) })
}

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
