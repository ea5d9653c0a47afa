// Package meshpb is the protocol in which the routing layer of ModelMesh is managed, see model-mesh.proto.
package meshpb
