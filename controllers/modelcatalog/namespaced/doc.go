// Package namespaced holds the RBAC markers of the controller for the namespace of the Catalog. They are generated into a separate
// ClusterRole. If Catalogs exist in one namespace only, a RoleBinding in that namespace is enough.
package namespaced

// Most permissions are limited to resource names. They include the permissions in the roles of readers and administrators, because only the
// holder of a permission can grant it.

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=model-catalog;model-catalog-postgres,verbs=get;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create
// +kubebuilder:rbac:groups="",resources=services,resourceNames=model-catalog;model-catalog-postgres,verbs=get;patch;delete
// +kubebuilder:rbac:groups="",resources=endpoints,resourceNames=model-catalog,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=list;watch;create
// +kubebuilder:rbac:groups="",resources=serviceaccounts,resourceNames=model-catalog,verbs=get;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=model-catalog-sources;mcp-catalog-sources;agent-catalog-sources;serving-runtime-catalog-sources,verbs=update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=default-catalog-sources;model-catalog-kube-rbac-proxy-config;model-catalog-default-sources;model-catalog-ca,verbs=patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=model-catalog-postgres;model-catalog-postgres-tls;model-catalog-kube-rbac-proxy,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=model-catalog-oauth-cookie-secret,verbs=get;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,resourceNames=model-catalog-postgres,verbs=get;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=list;watch;create
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,resourceNames=model-catalog-postgres;model-catalog-https-route;model-catalog-ingress;model-catalog-egress;model-catalog-postgres-egress,verbs=get;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,resourceNames=model-catalog,verbs=get;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles,resourceNames=model-catalog;model-catalog-admin,verbs=get;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=model-catalog-authenticated;model-catalog-admin-binding,verbs=get;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=create
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,resourceNames=model-catalog-https,verbs=get;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes/custom-host,verbs=create
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes/custom-host,resourceNames=model-catalog-https,verbs=update
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=list;watch;create
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,resourceNames=model-catalog-https,verbs=get;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=backendtlspolicies,verbs=create
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=backendtlspolicies,resourceNames=model-catalog-ca,verbs=get;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants,verbs=create
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants,resourceNames=allow-gateway-model-catalog,verbs=get;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants,resourceNames=allow-gateway-httproutes,verbs=get;delete
