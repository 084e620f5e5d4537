<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

use Spindle\Command;
use Spindle\Http;
use Spindle\Http\Client;
use Spindle\LauncherException;
use Spindle\Postgres;
use Spindle\Remote;
use Spindle\SpindleException;
use Spindle\Worker;

/** The page docs/reference/errors.md: when each exception is thrown, from its docblock, and what to do then. */
final readonly class ErrorIndex
{
    /** Advice about an exception, by class. */
    public const ADVICE = [
        SpindleException::class => 'Catch it to handle all failures of Spindle at run time.',
        LauncherException::class => 'Follow the message: set `CommandPoolOptions::$php` or'
            . ' `WorkerPoolOptions::$php`, raise the descriptor limit (`ulimit -n`), or create the pool after the'
            . ' fork. If a launcher died, repeat the commands in `$unfinished`, or set `rerunAfterCrash: true`.',
        Command\CommandFailedException::class => 'Read `$result`: exit code, signal, timeout or missing program, and'
            . ' both outputs.',
        Command\StreamException::class => 'Free space in the temporary directory, choose another one'
            . ' (`CommandPoolOptions::$temporaryDirectory`), or raise the file size limit (`ulimit -f`). Keep the'
            . ' stream open until the command has ended.',
        Worker\TaskException::class => 'Catch it to handle every failure of a task. `$key` identifies a task of'
            . ' `map()`, and `$attempts` is the number of attempts.',
        Worker\TaskFailedException::class => 'Correct the cause. `getPrevious()` or `$thrown` has the exception of the'
            . ' task, with its trace.',
        Worker\TaskTimeoutException::class => 'Make the task shorter, or raise `WorkerPoolOptions::$timeout`.',
        Worker\RetryLaterException::class => 'Throw it in a task that cannot run yet. If a caller gets it, as the'
            . ' previous exception of a `TaskFailedException`, the executor has no retries, such as an'
            . ' `InlineExecutor`, the task is a generator, or 24 hours have passed since the first one.',
        Worker\WorkerCrashedException::class => 'Read `$error`, `$signal` and the worker\'s last output. Raise'
            . ' `memory_limit`, remove `exit()`, or let the retry policy repeat tasks that may run twice.',
        Worker\WorkerStartException::class => 'Run the bootstrap file alone with `php`. The message has its error or'
            . ' the worker\'s output.',
        Worker\UnserializableException::class => '`$path` names the part that can\'t be sent. Pass an id, a path or'
            . ' plain data, and open connections in the task.',
        Worker\ContextUnavailableException::class => 'Install the extension that the message names, or use'
            . ' `WorkerContext::Process`.',
        Worker\ExecutorClosedException::class => 'Submit before `close()`, keep the pool until the results are read,'
            . ' and create a pool in each process after a fork.',
        Postgres\PostgresException::class => 'Catch it to handle every failure of the PostgreSQL client.',
        Postgres\ConnectionFailedException::class => 'Check host, port and whether the server runs. The message has'
            . ' the reason for each host.',
        Postgres\AuthenticationException::class => 'Check user, password and pg_hba.conf. To allow a method that is'
            . ' refused, set `PostgresOptions::$authentication`.',
        Postgres\ConnectionLostException::class => 'Run the statement again only if it may run twice. The pool opens'
            . ' another connection by itself.',
        Postgres\CommitUnknownException::class => 'Before you repeat the transaction, find out whether it was'
            . ' committed, for example by a unique id that the transaction writes.',
        Postgres\ConnectionClosedException::class => 'Finish the work before `close()`, or open another connection or'
            . ' pool.',
        Postgres\PoolTimeoutException::class => 'Hold connections for a shorter time, raise `maxConnections`, or accept'
            . ' less work at once. The message has the numbers.',
        Postgres\QueryException::class => 'Read `$sqlState`, `$hint` and `$position`, and correct the statement.',
        Postgres\QueryCancelledException::class => 'Make the statement faster, or raise its time limit'
            . ' (`PostgresOptions::$statementTimeout`).',
        Postgres\UniqueViolationException::class => 'Report the duplicate, or write `INSERT … ON CONFLICT`.',
        Postgres\ForeignKeyViolationException::class => 'Insert the referenced row first, or delete the rows that refer'
            . ' to this one.',
        Postgres\CheckViolationException::class => 'Correct the value, or change the constraint.',
        Postgres\NotNullViolationException::class => 'Give the column in `$column` a value.',
        Postgres\ExclusionViolationException::class => 'Choose values that do not overlap with an existing row.',
        Postgres\SerializationFailureException::class => 'Run the whole transaction again; `transaction()` does so if'
            . ' `$retries` is set.',
        Postgres\DeadlockException::class => 'Run the whole transaction again, and lock rows in the same order'
            . ' everywhere.',
        Postgres\TransactionAbortedException::class => 'Run a statement that may fail in a nested `transaction()`.',
        Postgres\InvalidParameterException::class => 'Pass one value for each parameter of the statement, of a type'
            . ' that the parameter accepts. `$position` has the number of the parameter.',
        Postgres\MultipleStatementsException::class => 'Send one statement at a time, or use `executeScript()`.',
        Postgres\UnexpectedResultException::class => 'Call the method for this result, such as `all()` for several'
            . ' rows, or limit the query.',
        Postgres\ResultTooLargeException::class => 'Use `stream()`, select less, or raise `memory_limit`.',
        Postgres\ProtocolException::class => 'Check that the address is that of a PostgreSQL server, and cast values of'
            . ' unusual types to text in the statement.',
        Postgres\Testing\TemporaryPostgresException::class
            => 'Install the server that the message names, and read `$output`.',
        Http\HttpException::class => 'Throw it in a handler, for example `new HttpException(404)`.',
        Http\AppException::class => 'Run `php app.php` and correct the file. It must return a handler, a container'
            . ' with one, or a closure.',
        Http\ListenException::class => 'Choose a free address, or end the process that has it.',
        Http\ServerClosedException::class => 'Create another server.',
        Http\SupervisorException::class => 'Install ext-pcntl, use one process, or set `memory_limit` in php.ini.',
        Http\UnsupportedFunctionException::class => 'Return a `Response` with the header, cookie or status. The message'
            . ' names the replacement.',
        Http\ClientDisconnectedException::class => 'Pass the request\'s cancellation to the calls that wait, so that'
            . ' they throw an exception and the handler ends.',
        Http\Middleware\AccessLogException::class => 'Create the directory, and let the server\'s user write there.',
        Client\HttpClientException::class => 'Catch it to handle every failure of the HTTP client.',
        Client\ConnectFailedException::class => 'Check host, port and proxy, or raise the option that the message'
            . ' names. Repeating the request is safe.',
        Client\ConnectionLostException::class => 'Repeat the request if the server may process it twice.',
        Client\RequestTimeoutException::class => 'Raise the option that the message names, or repeat the request if the'
            . ' server may process it twice.',
        Client\InvalidResponseException::class => 'Raise the option that the message names, if it names one. Otherwise,'
            . ' report the response to the owner of the server.',
        Client\InvalidRequestException::class => 'Give the request an absolute URL and valid headers. If its body'
            . ' failed, `getPrevious()` has the reason.',
        Client\RedirectLimitException::class => 'Check the URL for a loop, or raise `RequestOptions::$maxRedirects`.',
        Client\ClientClosedException::class => 'Send before `close()`, or create another client.',
        Remote\BrokerException::class => 'Catch it to handle every failure of the engine.',
        Remote\BrokerUnavailableException::class => 'Repeat the operation, with the same id if it adds a task. Check'
            . ' the address and whether the engine runs.',
        Remote\BrokerRefusedException::class => 'Change the setting of the engine that the message names.',
        Remote\QueueFullException::class => 'Start more agents, submit later, or raise `RemoteOptions::$maxJobs`.',
        Remote\PayloadTooLargeException::class => 'Store the data where the agents can read it, and pass its location.',
        Remote\ResultTooLargeException::class => 'Let the task store its result, and return the location.',
        Remote\JobLostException::class => 'Get the outcome sooner: it is kept for a limited time. Submit the job'
            . ' again if it may run twice.',
        Remote\JobCancelledException::class => 'No action is needed if the job was cancelled on purpose. Otherwise,'
            . ' dispatch the task again with another id.',
        Remote\JobConflictException::class => 'Use another id for a different task. If the task is a closure whose '
            . 'file has changed, dispatch a function, a static method or an invokable object instead.',
        Remote\KeyFileException::class => 'Create a key file as the message shows, and give all machines the same key.',
        Remote\InvalidSignatureException::class => 'Give agents and callers the same key, and the same version of'
            . ' Spindle.',
        Remote\LeaseLostException::class => 'No action is needed: other agents run the jobs. If the exception'
            . ' is frequent, check the network.',
        Remote\AgentClosedException::class => 'Create another agent.',
        Remote\Testing\TemporaryRedisException::class => 'Install redis-server, and read `$output`.',
    ];

    private const INTRODUCTION = <<<'MARKDOWN'
        # Errors

        <!-- php tools/site/reference.php writes this page -->

        A failed command returns a `CommandResult` with the exit code, signal or timeout, and only `orThrow()` throws.
        Every other failure at run time is an exception that implements `SpindleException`. Each message names the first
        cause, the input, and what to do. Programming errors, such as an option out of its range, are PHP's
        `ValueError`, `LogicException` and `InvalidArgumentException`. A cancellation throws `Amp\CancelledException`.

        MARKDOWN;

    public function __construct(private ClassNames $names) {}

    /** @return list<class-string> public exceptions for which {@see ADVICE} has no text */
    public function withoutAdvice(): array
    {
        return array_values(array_diff($this->exceptions(), array_keys(self::ADVICE)));
    }

    public function markdown(): string
    {
        $page = self::INTRODUCTION;
        $namespace = '';
        foreach ($this->exceptions() as $name) {
            $class = new \ReflectionClass($name);
            if ($namespace !== $class->getNamespaceName()) {
                $namespace = $class->getNamespaceName();
                $page .= "\n## {$namespace}\n\n| exception | when | what to do |\n|---|---|---|\n";
            }
            $isUnique = $this->names->link($class->getShortName()) !== null;
            $cells = [
                '`' . ($isUnique ? $class->getShortName() : $name) . '`',
                self::when($class),
                self::ADVICE[$name] ?? '',
            ];
            $page .= '| ' . implode(' | ', $cells) . " |\n";
        }

        return $page;
    }

    /** @param \ReflectionClass<object> $class */
    private static function when(\ReflectionClass $class): string
    {
        $text = (string) preg_replace(
            ['/\{@see ([^}]+)\}/', '/\s+/'],
            ['`$1`', ' '],
            explode("\n\n", (new DocComment((string) $class->getDocComment()))->text)[0],
        );

        return strtr($text, ['|' => '\\|']);
    }

    /** @return list<class-string> by namespace, the top one first */
    private function exceptions(): array
    {
        $exceptions = array_values(array_filter(
            $this->names->classes,
            static fn(string $class): bool => is_subclass_of($class, \Throwable::class),
        ));
        usort($exceptions, static fn(string $one, string $other): int
            => [substr_count($one, '\\') > 1, \dirname(strtr($one, '\\', '/')), $one]
                <=> [substr_count($other, '\\') > 1, \dirname(strtr($other, '\\', '/')), $other]);

        return $exceptions;
    }
}
