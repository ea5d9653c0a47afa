// Package beside states the rights that the controller of runtimes needs where models are served. They make a role of their own,
// so that an installation with a single such namespace can grant them there only. Of Services and Deployments the finalizers may be
// written: a ServiceMonitor belongs to the Service, and where one namespace is served the Service to the Deployment of the manager.
// OpenShift asks for that right before it stores an owner reference that holds up deletion.
package beside

// +kubebuilder:rbac:groups="",resources=services;secrets;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch
