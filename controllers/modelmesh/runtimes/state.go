package runtimes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// namespaceCache is the state of a namespace between reconciles, which run one at a time.
type namespaceCache struct {
	reporter
	// idleSince holds resources.Replicas.IdleSince by the name of a runtime.
	idleSince map[string]time.Time
	// granted is the etcd account and the time of its last verification.
	granted grantedAccount
	// headless is true if the Service is headless; nil if unknown.
	headless *bool
}

// namespaceState is the observed state of a namespace, from which a reconcile builds the desired objects.
type namespaceState struct {
	RenderInputs
	*namespaceCache
	// owner owns the Service: the Namespace, or the operator's Deployment in a single-namespace installation.
	owner client.Object
	// restricted is true if the namespace is known to enforce the restricted Pod Security Standard.
	restricted bool
	runtimes   map[string]modelmesh.Runtime
	models     []pkgmodelmesh.Model
	// etcd is the data of the Secret in the operator's namespace; nil if it does not exist.
	etcd map[string][]byte
	// tls is nil if traffic is not encrypted. errTLSSecretMissing is set if the TLS Secret does not exist in the namespace. tlsWarnings
	// describe invalid TLS Secrets, and report that the operator has no usable one.
	tls                 *resources.TLSInputs
	errTLSSecretMissing error
	tlsWarnings         []string
	// clientKeyPair holds the certificate and key with which the operator connects to the mesh.
	clientKeyPair       *meshclient.KeyPair
	storage             storageContent
	storageSecretExists bool
	// errForeignEtcdSecret is set if the pods would use an etcd Secret that a user created and the settings do not allow.
	errForeignEtcdSecret error
	// errPrerequisites is the error of the guards and the shared configuration. Deployments are applied only if it is nil.
	errPrerequisites error
}

// blockedError returns the error of a Deployment that was not applied because of errPrerequisites, or nil.
func (state *namespaceState) blockedError(deployment string) error {
	if state.errPrerequisites == nil {
		return nil
	}
	return apply.WithHeldBack(state.errPrerequisites, deploymentKind.Kind+" "+namespacedName(state.Namespace, deployment).String())
}

// needsDeployments reports whether any runtime needs a Deployment.
func (state *namespaceState) needsDeployments() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(state.runtimes)), modelmesh.Runtime.NeedsDeployment)
}

// collectState reads the state of a namespace. It calls the API server only for objects that are not cached or have changed.
func (r *runtimeReconciler) collectState(ctx context.Context, namespace string) (*namespaceState, error) {
	state := &namespaceState{RenderInputs: RenderInputs{
		Namespace: namespace, Served: r.Served(), SingleNamespace: r.Namespaces.SingleNamespace(), OperatorNamespace: r.Namespaces.OperatorNamespace, ManagerNamespace: r.admissionRules.Namespace,
	}}
	var found bool
	if state.namespaceCache, found = r.caches.Get(namespace); !found {
		state.namespaceCache = &namespaceCache{
			reporter:  reporter{recorder: r.recorder, namespace: namespace, lastMessages: reconciler.LastMessages[eventKey]{}},
			idleSince: map[string]time.Time{},
		}
		r.caches.Set(namespace, state.namespaceCache)
	}
	var err error
	if state.Settings, err = r.Settings(ctx, namespace); err != nil {
		return nil, err
	}
	if state.owner, state.restricted, err = r.serviceOwner(ctx, namespace); err != nil {
		return nil, err
	}
	if state.runtimes, err = r.Runtimes(ctx, namespace); err != nil {
		return nil, err
	}
	if state.models, err = r.Models(ctx, namespace); err != nil {
		return nil, err
	}
	if state.etcd, _, err = r.etcd.Get(ctx, namespacedName(state.OperatorNamespace, state.Settings.EtcdSecretName)); err != nil {
		return nil, err
	}
	if state.storage, state.storageSecretExists, err = r.storage.Get(ctx, namespacedName(namespace, state.Settings.StorageSecretName)); err != nil {
		return nil, err
	}
	return state, r.collectTLS(ctx, state)
}

// collectTLS reads the TLS Secret of the namespace, which pods mount. If that Secret is missing or invalid, the operator's own connections
// use the TLS Secret in the operator's namespace.
func (r *runtimeReconciler) collectTLS(ctx context.Context, state *namespaceState) error {
	name := state.Settings.TLS.SecretName
	if name == "" {
		return nil
	}
	state.tls = &resources.TLSInputs{SecretName: name}
	content, found, err := r.tls.Get(ctx, namespacedName(state.Namespace, name))
	if err != nil {
		return err
	}
	if !found {
		state.errTLSSecretMissing = fmt.Errorf("unable to access TLS secret '%s': there is no such Secret in namespace %s; create it", name, state.Namespace)
	}
	state.tls.HasCA, state.clientKeyPair = content.hasCA, content.pair
	state.addTLSWarning(state.Namespace, content)
	if state.clientKeyPair != nil || state.Namespace == state.OperatorNamespace {
		return nil
	}
	operatorContent, _, err := r.tls.Get(ctx, namespacedName(state.OperatorNamespace, name))
	state.clientKeyPair = operatorContent.pair
	state.addTLSWarning(state.OperatorNamespace, operatorContent)
	return err
}

// addTLSWarning adds a warning if the content of a TLS Secret is invalid.
func (state *namespaceState) addTLSWarning(namespace string, content tlsContent) {
	if content.err != nil {
		state.tlsWarnings = append(state.tlsWarnings, fmt.Sprintf("%v, in namespace %s: correct it", content.err, namespace))
	}
}

// reportToAllRuntimes records an Event on each runtime that needs a Deployment. An empty message clears the last one.
func (state *namespaceState) reportToAllRuntimes(action, message string) {
	for _, name := range sortedNames(state.runtimes) {
		if rt := state.runtimes[name]; rt.NeedsDeployment() {
			state.warn(rt.Object, action, ReasonRefused, message)
		}
	}
}

// serviceOwner returns the owner of the Service and whether the namespace is known to enforce the restricted Pod Security Standard.
// Objects that are not cached are read once.
func (r *runtimeReconciler) serviceOwner(ctx context.Context, namespace string) (owner client.Object, restricted bool, err error) {
	if r.Namespaces.SingleNamespace() {
		owner, err := r.getOperatorDeployment(ctx, namespace)
		return owner, false, err
	}
	metadata, err := r.Namespaces.GetMetadata(ctx, namespace)
	if err != nil {
		return nil, false, err
	}
	if metadata == nil {
		return nil, false, fmt.Errorf("namespace %s, which owns the Service, was deleted", namespace)
	}
	return metadata, metadata.Labels[modelmesh.LabelEnforce] == "restricted", nil
}

// getOperatorDeployment reads the operator's Deployment once: it exists as long as the operator runs.
func (r *runtimeReconciler) getOperatorDeployment(ctx context.Context, namespace string) (client.Object, error) {
	if cached := r.operatorDeployment.Load(); cached != nil {
		return cached, nil
	}
	deployment, name := &appsv1.Deployment{}, namespacedName(namespace, r.Config.ControllerDeployment)
	err := r.live.Get(ctx, name, deployment)
	if err != nil {
		err = fmt.Errorf("reading Deployment %s, which owns the Service: %w", name, err)
	}
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: name the Deployment of the manager in CONTROLLER_DEPLOYMENT, and its namespace in NAMESPACE", err)
	}
	if err != nil {
		return nil, err
	}
	r.operatorDeployment.Store(deployment)
	return deployment, nil
}

// updateMissingReferences stores the references of the namespace's Predictors to storage entries and PersistentVolumeClaims that do
// not exist.
func (r *runtimeReconciler) updateMissingReferences(ctx context.Context, state *namespaceState) error {
	missingByPredictor := map[string][]reference.Missing{}
	for _, model := range state.models {
		if model.Source != pkgmodelmesh.SourcePredictor {
			continue
		}
		missing, err := r.findMissingReferences(ctx, state, model)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			missingByPredictor[model.Name] = missing
		}
	}
	r.MissingReferences.Set(state.Namespace, missingByPredictor)
	return nil
}

func (r *runtimeReconciler) findMissingReferences(ctx context.Context, state *namespaceState, model pkgmodelmesh.Model) ([]reference.Missing, error) {
	var missing []reference.Missing
	if key := model.StorageKey(); key != nil && *key != "" && !state.storage.keys.Has(*key) {
		missingEntry := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: state.Settings.StorageSecretName}}
		if state.storageSecretExists {
			missingEntry.Key = *key
		}
		missing = append(missing, missingEntry)
	}
	if claim := model.Claim(); claim != "" {
		metadata, err := objectmeta.Get(ctx, r.claims, pvcKind, namespacedName(state.Namespace, claim))
		if err != nil {
			return nil, err
		}
		if metadata == nil {
			missing = append(missing, reference.Missing{Reference: reference.Reference{Kind: reference.PersistentVolumeClaim, Name: claim}})
		}
	}
	return missing, nil
}

// errInvalidSpec is the prefix of messages about runtimes with an invalid spec.
var errInvalidSpec = errors.New("Invalid runtime Spec") //nolint:staticcheck // the message of the legacy controller

// validateSpec returns the first error in the spec of a runtime.
func (in RenderInputs) validateSpec(rt modelmesh.Runtime) error {
	if rt.DecodeError != "" {
		return fmt.Errorf("%w: %s", errInvalidSpec, rt.DecodeError)
	}
	if problem := pkgmodelmesh.Validate(rt.Spec, in.Settings.BuiltInServerTypes); problem != nil {
		return fmt.Errorf("%w: %w", errInvalidSpec, problem)
	}
	return nil
}

// specsByName returns the specs of the runtimes that are not terminating.
func specsByName(runtimes map[string]modelmesh.Runtime) map[string]*v1alpha1.ServingRuntimeSpec {
	specs := make(map[string]*v1alpha1.ServingRuntimeSpec, len(runtimes))
	for name, r := range runtimes {
		if r.Object.GetDeletionTimestamp().IsZero() {
			specs[name] = r.Spec
		}
	}
	return specs
}

// hasModelFor reports whether a runtime with the given labels supports one of the models.
func hasModelFor(models []pkgmodelmesh.Model, labels []string) bool {
	return slices.ContainsFunc(models, func(m pkgmodelmesh.Model) bool { return pkgmodelmesh.HasLabels(labels, m.Label()) })
}

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
