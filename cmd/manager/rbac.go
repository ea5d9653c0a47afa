package main

// Permissions of the manager itself, from which `make generate` writes config/rbac/manager/role.yaml. The other markers are in the
// components.

// Watch which optional APIs are served (pkg/capability).
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// Watch the TLS profile of OpenShift (pkg/tlsprofile).
// +kubebuilder:rbac:groups=config.openshift.io,resources=apiservers,verbs=list;watch

// Watch the ingress domain of OpenShift (pkg/clusterdomain).
// +kubebuilder:rbac:groups=config.openshift.io,resources=ingresses,verbs=list;watch

// Record Events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Review scrapers of the metrics, and the permissions of authors of custom resources (pkg/admission).
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Write the CA of the webhook certificate into our webhook configurations and the CRD with conversion (pkg/certs), even if
// their component is disabled, because the paths still respond.
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=appwrapper-mutating-webhook-configuration;codeflare-operator-mutating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=appwrapper-validating-webhook-configuration;codeflare-operator-validating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=model-registry-operator-mutating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=model-registry-operator-validating-webhook-configuration;catalog-validating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=modelmesh-servingruntime.serving.kserve.io,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=mlflow-validating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=get;patch
