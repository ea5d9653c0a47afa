package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// Kinds of the objects of a server and its database.
var (
	Deployment         = appsv1.SchemeGroupVersion.WithKind("Deployment")
	Service            = corev1.SchemeGroupVersion.WithKind("Service")
	ServiceAccount     = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	Secret             = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMap          = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	Claim              = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	EndpointSlice      = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
	Ingress            = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	NetworkPolicy      = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	DisruptionBudget   = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	Role               = rbacv1.SchemeGroupVersion.WithKind("Role")
	RoleBinding        = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	ClusterRoleBinding = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

// OptionalKinds are the kinds of children of optional APIs.
var OptionalKinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.ReferenceGrant, capability.BackendTLSPolicy}

// Caches returns the informers for children of servers. They select the managed label, which EndpointSlices copy from their Service. An
// empty namespace selects all; optional kinds are always watched in all namespaces.
func Caches(namespace string) []component.CacheNeed {
	needs := []component.CacheNeed{
		{Kind: Deployment, Namespace: namespace, FullObjects: true}, {Kind: EndpointSlice, Namespace: namespace, FullObjects: true}, {Kind: ClusterRoleBinding},
	}
	for _, kind := range []schema.GroupVersionKind{Service, ServiceAccount, NetworkPolicy, DisruptionBudget, Role, RoleBinding, Ingress} {
		needs = append(needs, component.CacheNeed{Kind: kind, Namespace: namespace})
	}
	for _, kind := range OptionalKinds {
		needs = append(needs, component.CacheNeed{Kind: kind})
	}
	return needs
}

// OwnServerChildren adds watches of the children that every cluster serves.
func OwnServerChildren(b *builder.Builder) *builder.Builder {
	b.Owns(&appsv1.Deployment{})
	for _, child := range []client.Object{
		&corev1.Service{}, &corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &networkingv1.Ingress{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{},
	} {
		b.Owns(child, builder.OnlyMetadata)
	}
	return b
}

// Find reads an object from the cache, or from the API server if the cache does not contain it because it lacks the managed label. It
// reports whether the object exists.
func Find(ctx context.Context, cached, live client.Reader, key client.ObjectKey, object client.Object) (bool, error) {
	err := cached.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, key, object)
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// FindDeployment returns a Deployment, or an empty one if it does not exist.
func FindDeployment(ctx context.Context, cached, live client.Reader, namespace, name string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if _, err := Find(ctx, cached, live, client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return d, nil
}

// DatabaseCause returns a suffix for the status message of a server with the problem of its generated database, or "".
func DatabaseCause(ctx context.Context, cached, live client.Reader, namespace, name string, pods []corev1.Pod, fields conditions.ResourceFields) (string, error) {
	d, err := FindDeployment(ctx, cached, live, namespace, name)
	if err != nil {
		return "", err
	}
	if cause := fields.Cause(d, pods); cause != "" {
		return "; its database: " + cause, nil
	}
	return "", nil
}

// EvaluateDeployment returns the state of a server by its Deployment and the EndpointSlices of its Service. An available server stays so
// until the Deployment controller has observed the current generation, which normally takes milliseconds.
func EvaluateDeployment(ctx context.Context, cached, live client.Reader, d *appsv1.Deployment, service client.ObjectKey,
	now time.Time, available bool,
) (serving.State, error) {
	if available && d.Generation != d.Status.ObservedGeneration {
		return serving.State{}, &reconciler.Wait{For: "the Deployment controller", Retry: time.Second, Unready: true}
	}
	return serving.Evaluate(d, service.Name, now, available, func() ([]discoveryv1.EndpointSlice, error) {
		return serving.Endpoints(ctx, cached, live, service.Namespace, service.Name)
	})
}

// Retry calls try until it succeeds or ctx ends, with exponential back-off from first to longest. It calls failed after each failure.
func Retry(ctx context.Context, clk clock.Clock, first, longest time.Duration,
	try func(context.Context) error, failed func(error, time.Duration),
) {
	for pause := first; ; pause = min(2*pause, longest) {
		err := try(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		failed(err, pause)
		select {
		case <-ctx.Done():
			return
		case <-clk.After(pause):
		}
	}
}

// ConditionDatabaseCertificate exists, and is False, only while a database certificate of a user expires soon.
const ConditionDatabaseCertificate = "DatabaseCertificateReady"

// Certificates issues the certificates of servers, unless the platform does, and of their databases. All clients of the databases are
// managed, so that their CA need not be published.
type Certificates struct{ server, database *servingcert.Issuer }

// NewCertificates returns Certificates that read metadata of Secrets from cached.
func NewCertificates(cached, live client.Reader, applier *apply.Applier, clk clock.PassiveClock) *Certificates {
	return &Certificates{
		server:   &servingcert.Issuer{Cached: cached, Live: live, Applier: applier, Clock: clk},
		database: &servingcert.Issuer{Cached: cached, Live: live, Applier: applier, Clock: clk, Condition: ConditionDatabaseCertificate},
	}
}

// Ensure issues and renews both certificates of an owner. nil means that it needs none.
func (c *Certificates) Ensure(ctx context.Context, owner reconciler.Object, server, database *servingcert.Spec) error {
	return errors.Join(ensure(ctx, c.server, owner, server), ensure(ctx, c.database, owner, database))
}

func ensure(ctx context.Context, k *servingcert.Issuer, owner reconciler.Object, wanted *servingcert.Spec) error {
	if wanted == nil {
		k.Release(owner)
		return nil
	}
	return k.Ensure(ctx, owner, *wanted)
}

// CABundle returns the CA of the server certificate, nil if the operator did not issue it.
func (c *Certificates) CABundle(owner types.UID) []byte { return c.server.CABundle(owner) }

// RequeueForRenewal requeues an owner when a certificate is to be renewed. It must be called in the last phase.
func (c *Certificates) RequeueForRenewal(owner types.UID) error {
	return errors.Join(c.server.AwaitRenewal(owner), c.database.AwaitRenewal(owner))
}

// Forget removes the state of a deleted owner.
func (c *Certificates) Forget(owner types.UID) {
	c.server.Forget(owner)
	c.database.Forget(owner)
}
