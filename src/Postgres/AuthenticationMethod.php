<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Methods by which a server authenticates the user. The values are those of libpq's require_auth. */
enum AuthenticationMethod: string
{
    /** No password: the server trusts the address, the operating system user or the TLS certificate of the client. */
    case None = 'none';

    /** SCRAM-SHA-256: the password is never sent, and the server must prove that it knows the password. */
    case Scram = 'scram-sha-256';

    /** The client sends a hash, which an eavesdropper can crack quickly. The server does not prove its identity. */
    case Md5 = 'md5';

    /** The password itself is sent to the server. */
    case Password = 'password';
}
