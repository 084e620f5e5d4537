<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

/** Thrown when the TLS handshake fails, for example because the server's certificate is not trusted. */
final class TlsException extends NetworkException {}
