// Package meshpb contains the gRPC API with which clients manage models in the routing layer of ModelMesh; see model-mesh.proto.
package meshpb
