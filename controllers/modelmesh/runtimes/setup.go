package runtimes

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

var (
	namespaceKind  = corev1.SchemeGroupVersion.WithKind("Namespace")
	serviceKind    = corev1.SchemeGroupVersion.WithKind("Service")
	configMapKind  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	secretKind     = corev1.SchemeGroupVersion.WithKind("Secret")
	claimKind      = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	policyKind     = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	autoscalerKind = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
)

// Rights on what runtimes consist of. They make a role of their own, so that an installation with a single served namespace can grant
// them there only. Of Services and Deployments the finalizers may be written: a ServiceMonitor belongs to the Service, and where one
// namespace is served the Service to the Deployment of the manager. OpenShift asks for that right before it stores an owner reference
// that holds up deletion.

// +kubebuilder:rbac:groups="",resources=services;secrets;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch

// Caches says what is held in memory: of children the metadata, by our label; Deployments whole, for their replicas; Secrets and
// ConfigMaps, which belong to users, as bare metadata. An empty namespace is all; where it is one there is no NetworkPolicy.
func Caches(namespace string) []component.CacheNeed {
	needs := []component.CacheNeed{
		{Kind: deploymentKind, Namespace: namespace, Whole: true},
		{Kind: serviceKind, Namespace: namespace},
		{Kind: autoscalerKind, Namespace: namespace},
		{Kind: secretKind, Namespace: namespace, Everything: true},
		{Kind: configMapKind, Namespace: namespace, Everything: true},
		{Kind: capability.ServiceMonitor},
	}
	if namespace == "" {
		needs = append(needs, component.CacheNeed{Kind: policyKind})
	}
	return needs
}

// Setup registers the controller of runtimes. It is a modelmesh.Part.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *modelmesh.Shared) error {
	claims, err := component.Narrow(mgr, modelmesh.Metadata(claimKind), shared.Namespaces.Narrow(), component.Bare)
	if err != nil {
		return err
	}
	s := newServer(&server{
		Catalog: shared.Catalog, authors: shared.Config.Authors, clock: shared.Clock, recorder: shared.Recorder,
		live: mgr.GetAPIReader(), claims: claims, applier: shared.Applier, pool: shared.Pool, stream: shared.Events,
	})
	c, err := s.watch(mgr, claims, shared.Served, shared.Settings)
	if err != nil {
		return fmt.Errorf("building the controller of runtimes: %w", err)
	}
	s.watchOptional(ctx, mgr, c, shared.Served)
	if err := mgr.Add(&leftovers{server: s, log: mgr.GetLogger().WithName(modelmesh.ComponentName)}); err != nil {
		return fmt.Errorf("adding to the manager: %w", err)
	}
	return nil
}
